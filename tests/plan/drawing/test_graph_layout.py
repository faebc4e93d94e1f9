"""Boxes that do not overlap, and lines that go where they should and through no box."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.plan.drawing.graph_layout import lay_out


@st.composite
def graphs(draw, nodes_max=14):
    """What each node reads from, all of them reached from the last."""
    count = draw(st.integers(1, nodes_max))
    readers = [draw(st.lists(st.integers(node + 1, count - 1), min_size=1, max_size=3)) for node in range(count - 1)]
    inputs = {node: [] for node in range(count)}
    for node, found in enumerate(readers):
        for reader in found:
            inputs[reader].append(node)
    sizes = {node: (draw(st.integers(5, 300)), draw(st.integers(5, 80))) for node in inputs}
    return inputs, sizes


def overlap(a, b):
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def bottom(box):
    return (box.x + box.width / 2, box.y + box.height)


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_boxes_keep_their_size_stay_inside_and_do_not_overlap_and_no_line_goes_through_one(graph):
    layout = lay_out(*graph)
    boxes = layout.boxes.values()
    assert {node: (box.width, box.height) for node, box in layout.boxes.items()} == graph[1]
    for box in boxes:
        assert -1e-6 <= box.x <= box.x + box.width <= layout.width + 1e-6
        assert 0 <= box.y <= box.y + box.height <= layout.height
    assert not any(itertools.starmap(overlap, itertools.combinations(boxes, 2)))
    for line, box in itertools.product(layout.lines, boxes):
        (x, y), (bend_x, bend_y), (_, end_y) = line.start, line.bend, line.end
        assert y <= bend_y <= end_y
        # Between start and bend it may be anywhere from one side to the other, from there on it is straight.
        assert not (
            min(x, bend_x) < box.x + box.width and max(x, bend_x) > box.x and y < box.y + box.height and bend_y > box.y
        )
        assert not (box.x < bend_x < box.x + box.width and bend_y < box.y + box.height and end_y > box.y)


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_data_flows_down_from_each_input_into_each_reader(graph):
    inputs, sizes = graph
    layout = lay_out(inputs, sizes)
    arrows = {line.end: line for line in layout.lines if line.is_arrow}
    threads = {line.end: line for line in layout.lines if not line.is_arrow}
    assert len(arrows) == sum(map(len, inputs.values()))
    for node, sources in inputs.items():
        box = layout.boxes[node]
        for number, source in enumerate(sources, 1):
            line = arrows[box.x + box.width * number / (len(sources) + 1), box.y]
            while line.start in threads:
                line = threads[line.start]
            assert line.start == bottom(layout.boxes[source])
