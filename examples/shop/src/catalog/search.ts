import type { Book } from "./book.ts";

/** At most this many results per page. */
export const pageSize = 20;

/**
 * Finds books whose title or author holds every word of the query, whatever the case or accents.
 *
 * Books in stock come first; an empty query finds nothing.
 */
export function searchBooks(books: readonly Book[], query: string): readonly Book[] {
  const words = fold(query).split(" ").filter(Boolean);
  if (words.length === 0) return [];
  return books
    .filter((book) => words.every((word) => fold(`${book.title} ${book.author}`).includes(word)))
    .sort((left, right) => Number(right.stock > 0) - Number(left.stock > 0))
    .slice(0, pageSize);
}

function fold(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}
