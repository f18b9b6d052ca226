import OpenAI from "openai";
import { expect } from "vitest";
import type { ServedService } from "../testing/serve-service.ts";

/** OpenAI's own client of a server. */
export const clientOf = (at: ServedService, apiKey = "none"): OpenAI =>
  new OpenAI({ baseURL: `${at.url}/v1`, apiKey, maxRetries: 0 });

/** The error of OpenAI's client that work ends with. */
export const refusal = async (work: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> => {
  const error = await Promise.resolve(work).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(OpenAI.APIError);
  return error as InstanceType<typeof OpenAI.APIError>;
};

export const allOf = async <Item>(items: AsyncIterable<Item>): Promise<Item[]> => {
  const read: Item[] = [];
  for await (const item of items) read.push(item);
  return read;
};
