"""`python -m gridbuf_conformance_mutants`: prints the kill matrix in Markdown."""

from .kills import render

if __name__ == "__main__":
    print(render(), end="")
