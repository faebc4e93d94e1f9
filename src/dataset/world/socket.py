"""Sockets: the names of ``socket``."""

from socket import *
