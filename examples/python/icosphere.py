"""An icosahedral grid of triangles, as ICON has: the vertices, the cells, and the neighbours of each cell."""

import numpy as np
from numpy.typing import ArrayLike


def icosphere(splits: int) -> tuple[np.ndarray, np.ndarray]:
    """The vertices (n, 3) and the cells (m, 3) of an icosahedron, each triangle split into four, `splits` times."""
    golden = (1.0 + 5.0**0.5) / 2.0
    corners = [(0.0, a, b) for a in (-1.0, 1.0) for b in (-golden, golden)]
    vertices = on_sphere([np.roll(corner, turn) for turn in range(3) for corner in corners])
    close = vertices @ vertices.T > 0.4  # the three corners of a cell are neighbours
    triples = [t for t in np.ndindex(12, 12, 12) if t[0] < t[1] < t[2]]
    cells = np.array([t for t in triples if close[t, np.roll(t, 1)].all()])
    for _ in range(splits):
        edges, edge_of_side = sides(cells)
        a, b, c = cells.T
        ab, bc, ca = len(vertices) + edge_of_side.T
        four = [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
        cells = np.concatenate(four, axis=1).T
        vertices = np.concatenate([vertices, on_sphere(vertices[edges].sum(axis=1))])
    return vertices, cells


def on_sphere(points: ArrayLike) -> np.ndarray:
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def sides(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edges as pairs of vertices, and the number of the edge at each of a cell's three sides."""
    pairs = np.sort(np.stack([cells, np.roll(cells, -1, axis=1)], axis=-1)).reshape(-1, 2)
    edges, edge_of_side = np.unique(pairs, axis=0, return_inverse=True)
    return edges, edge_of_side.reshape(cells.shape)


def neighbours(cells: np.ndarray) -> np.ndarray:
    """For each cell the three cells that share an edge with it, as in ICON's table C2E2C."""
    _, edge_of_side = sides(cells)
    two = np.argsort(edge_of_side, axis=None).reshape(-1, 2) // 3  # the cells at each edge
    both = np.concatenate([two, two[:, ::-1]])
    return both[np.argsort(both[:, 0]), 1].reshape(-1, 3).astype(np.int32)


if __name__ == "__main__":
    vertices, cells = icosphere(3)
    table = neighbours(cells)
    assert len(cells) == 20 * 4**3 and len(vertices) == len(cells) // 2 + 2
    assert all(cell in table[other] for cell, others in enumerate(table) for other in others)
    assert all(len({*cells[0], *cells[other]}) == 4 for other in table[0])  # two shared corners
    print(f"{len(cells)} cells, {len(vertices)} vertices")
