/* The order of search results: Python's names and the guides, then the rest; decisions that are superseded come last. */
const PLACES = [
  [/^reference\/python\//, 20],
  [/^(get-started|tutorial|guide\/|how-to\/|explanation\/)/, 15],
  [/^(reference\/(cpp|rules)|zoo|benchmarks|changelog|contributing|architecture|upstream|spec)/, -20],
  [/^adr\//, -40],
];
const SUPERSEDED = [];
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score + (PLACES.find(([place]) => place.test(page)) ?? [0, 0])[1] - (SUPERSEDED.includes(page) ? 100 : 0),
  objNameMatch: 30, objPartialMatch: 3, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
