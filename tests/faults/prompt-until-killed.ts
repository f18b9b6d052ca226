/**
 * Prompts several sessions at the same time until it is killed, and prints the answered prompts: `node
 * prompt-until-killed.ts <database> <seed> <first number>`. A line is `<session> <prompt>`.
 */
import { writeSync } from "node:fs";
import { SqliteSessionStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { answerTo, createBusyAgent } from "./busy-agent.ts";
import { createRandom } from "./seeded-random.ts";

const [file = "", seed, first] = process.argv.slice(2);
const agent = createBusyAgent(new SqliteSessionStore({ file }), createRandom(Number(seed)));

async function converse(session: string): Promise<never> {
  for (let number = Number(first); ; number += 1) {
    const prompt = `#${number}`;
    const { text } = await agent.session(session).prompt(prompt);
    if (text !== answerTo(prompt)) throw new Error(`${prompt} was answered with ${text}`);
    writeSync(1, `${session} ${prompt}\n`);
  }
}

writeSync(1, "ready\n");
await Promise.all(["a", "b", "c", "d"].map(converse));
