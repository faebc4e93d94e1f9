"""The methods of Dataset, a file for each family. dataset.py lists them; its class inherits from the families.

A method has the signature, the docstring with an example, and the checks of arguments that the node of its op cannot
do. It adds the op to the plan: ``return Dataset(deferred.Take(self._plan, count, name=name))``.
"""
