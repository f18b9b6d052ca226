// Checks the rule "Money" of CLAUDE.md: amounts are whole cents, so a number with decimals is rounded where it is used.
import { readFileSync } from "node:fs";

for (const path of process.argv.slice(2)) {
  for (const [index, line] of readFileSync(path, "utf8").split("\n").entries()) {
    const code = line.replace(/(["'`]).*?\1|\/\/.*|^\s*\*.*/g, "");
    const decimal = /\b\d+\.\d+\b/.exec(code)?.[0];
    if (decimal === undefined || code.includes("roundCents(")) continue;
    console.log(`${path}:${index + 1}: ${decimal} is no whole number of cents; round it with roundCents.`);
    process.exitCode = 1;
  }
}
