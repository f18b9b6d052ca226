import type { KitContext } from "kit";
import { shelf } from "../catalog/shelf.ts";

/** The payload of a run. */
export const payload = {
  type: "object",
  properties: {
    title: { type: "string", description: "A book of the shop, such as Harbour Lights." },
    copies: { type: "integer", minimum: 1 },
  },
  required: ["title", "copies"],
};

/** Orders copies of a book. It fails for a book that the shop does not sell. */
export async function run(ctx: KitContext): Promise<unknown> {
  const { title, copies } = ctx.payload as { readonly title: string; readonly copies: number };
  const book = await ctx.step("find the book", () => {
    const found = shelf.find((one) => one.title === title);
    if (found === undefined) throw new Error(`The shop sells no book called "${title}".`);
    return { isbn: found.isbn, stock: found.stock };
  });
  return await ctx.step("order copies", () => ({ isbn: book.isbn, stock: book.stock + copies }));
}
