import assert from "node:assert/strict";
import { test } from "node:test";
import { searchBooks } from "./search.ts";
import { shelf } from "./shelf.ts";

test("catalog-search#1.1 finds books by a word of the title", () => {
  assert.deepEqual(titles("harbour"), ["The Quiet Harbour", "Harbour Lights"]);
});

test("catalog-search#1.2 ignores case and accents", () => {
  assert.deepEqual(titles("DVORAK"), ["Bread, Slowly"]);
});

test("catalog-search#2.1 puts books in stock before those that are sold out", () => {
  const books = shelf.map((book, index) => ({ ...book, stock: index === 0 ? 0 : 1 }));
  assert.deepEqual(
    searchBooks(books, "harbour").map((book) => book.title),
    ["Harbour Lights", "The Quiet Harbour"],
  );
});

test("an empty search box shows an empty page", () => {
  assert.deepEqual(titles("  "), []);
});

function titles(query: string): readonly string[] {
  return searchBooks(shelf, query).map((book) => book.title);
}
