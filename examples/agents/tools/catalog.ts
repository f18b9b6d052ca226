import { defineTool } from "kit";
import { z } from "zod";

const prices = new Map([
  ["Momo", 1490],
  ["Emil", 990],
]);

/** A tool of the program: it runs in this process, and its schema describes its arguments. */
export const catalog = defineTool({
  name: "catalog",
  description: "Tells the price of a book, in cents.",
  input: z.object({ title: z.string() }),
  idempotent: true,
  execute({ title }) {
    const cents = prices.get(title);
    return cents === undefined ? { isError: true, content: `There is no book "${title}".` } : `${cents}`;
  },
});
