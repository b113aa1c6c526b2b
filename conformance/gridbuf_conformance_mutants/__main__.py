"""`python -m gridbuf_conformance_mutants`: rewrites KILLS.md."""

from .kills import KILLS_FILE, render

if __name__ == "__main__":
    KILLS_FILE.write_text(render(), encoding="utf-8")
    print(f"wrote {KILLS_FILE.name}")
