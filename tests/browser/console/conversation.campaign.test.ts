/** Tests a conversation as people have it: with a real browser, a real `kit start`, and a model that follows a script. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { browserForTests } from "../browser-for-tests.ts";
import { type Demo, startDemo } from "./demo-project.ts";
import { type OpenedScreen, openScreen, violations } from "./open-console.ts";

const markdown = [
  "A [file](src/cart/total.ts#L2), a [site](https://example.com), [bad](javascript:globalThis.hacked=1) and a note[^1].",
  "- [x] done\n- [ ] open",
  "```ts\nexport const a = 1;\n```",
  "[^1]: The footnote.",
].join("\n\n");

const deskAgent = `import { createAgent } from "kit";
import { createScriptedModel } from "kit/testing";
import { local } from "kit/sandboxes/local";
const model = createScriptedModel(({ prompt }) => {
  const user = prompt.findLast(({ role }) => role === "user");
  const text = user.content.map((part) => part.text ?? "").join("");
  const usage = { input: 3000, output: 700 };
  if (prompt.at(-1).role === "tool") return { text: "It is written.", usage };
  if (text.includes("long")) return { deltas: Array.from({ length: 300 }, (_, n) => "Paragraph " + n + ".\\n\\n") };
  if (text.includes("markdown")) return { text: ${JSON.stringify(markdown)} };
  if (text.includes("write")) return { toolCalls: [{ name: "write", input: { path: "src/cart/total.ts", content: "export {};\\n" } }] };
  return { text: "Two rules apply.", usage };
});
export const triggers = { webhook: true };
export default createAgent(() => ({ model, sandbox: local(), allowWrite: true, approvals: { tools: ["write"] } }));
`;
const deploy = `export async function run(ctx) {
  const schema = { type: "object", properties: { approved: { type: "boolean" } }, required: ["approved"] };
  return await ctx.waitFor("go ahead", { schema });
}
`;

let demo: Demo;
const browser = browserForTests();
beforeAll(async () => {
  demo = await startDemo({}, { "src/agents/desk.ts": deskAgent, "src/workflows/deploy.ts": deploy });
});
afterAll(() => demo[Symbol.asyncDispose]());

const open = (path: string, width?: number): Promise<OpenedScreen> =>
  openScreen(browser, { url: demo.kit.url, path, width });
const write = async ({ page }: OpenedScreen, text: string): Promise<void> => {
  await page.getByLabel("Message to desk").fill(text);
  await page.keyboard.press("Enter");
};

test("a new conversation opens at once, with the cursor in its field and three questions to click", async () => {
  await using opened = await open("/console/agents/desk");
  const { page } = opened;
  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByRole("button", { name: "Which rules apply to src/cart/total.ts?" }).waitFor();
  expect(await page.evaluate("document.activeElement.tagName")).toBe("TEXTAREA");
  expect(await page.locator("main").getByRole("listitem").getByRole("button").count()).toBe(3);
  await expect.poll(() => violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Which rules apply to src/cart/total.ts?" }).click();
  await page.getByText("Two rules apply.").waitFor();
  await expect.poll(() => page.getByRole("status").allTextContents()).toContain("desk has answered.");
  const end = page.locator("p").filter({ hasText: /^Done/ });
  await expect.poll(() => end.textContent()).toContain("3.7k tokens");
  await page.reload();
  await expect.poll(() => end.textContent()).toContain("3.7k tokens");
});

test("a question in the field for an id is not lost in an error", async () => {
  await using opened = await open("/console/agents/desk");
  const { page } = opened;
  await page.getByRole("button", { name: "Use an id" }).click();
  await page.keyboard.type("Which rules apply to src/app.ts?");
  await page.keyboard.press("Enter");
  await page.getByText("This reads like a message.").waitFor();
  await page.getByLabel("Id of the conversation").fill("ticket-7");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "ticket-7" }).waitFor();
});

test("the view begins at the start of a long answer, and one click goes to its end", async () => {
  await using opened = await open("/console/agents/desk/long");
  const { page } = opened;
  await write(opened, "a long answer");
  await page.getByText("Paragraph 299.").waitFor();
  for (const _ of ["live", "reloaded"]) {
    await expect.poll(() => isInView(opened, "Paragraph 0.")).toBe(true);
    expect(await isInView(opened, "Paragraph 299.")).toBe(false);
    await page.reload();
    await page.getByText("Paragraph 299.").waitFor();
  }
  await page.getByRole("button", { name: "To the end" }).click();
  await expect.poll(() => isInView(opened, "Paragraph 299.")).toBe(true);
});

async function isInView({ page }: OpenedScreen, text: string): Promise<boolean> {
  const box = await page.getByText(text, { exact: true }).boundingBox();
  return box !== null && box.y >= 0 && box.y < 700;
}

test("a person who approves a write sees every line that it replaces, and a waiting call is no work", async () => {
  await using opened = await open("/console/agents/desk/write", 390);
  const { page } = opened;
  await write(opened, "write it");
  const change = page.getByRole("group", { name: "Change of src/cart/total.ts" });
  await change.waitFor();
  expect(await change.getByText("removed: ").count()).toBe(5);
  expect(await change.getByText("added: ").count()).toBe(1);
  await page.locator("header").getByText("waiting for you").waitFor();
  await expect
    .poll(() => page.getByRole("alert").allTextContents())
    .toContain("desk waits for your decision: write src/cart/total.ts");
  await expect.poll(() => violations(page)).toEqual([]);
  await page.goto(`${demo.kit.url}/console/agents/desk/write/trace`);
  await page
    .locator("main")
    .getByRole("button", { name: /write.*waiting/, pressed: false })
    .waitFor();
  await page.goto(`${demo.kit.url}/console/agents/desk/write`);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Wrote 11 characters to src/cart/total.ts, replacing 5 lines.").waitFor();
  await page.getByText("It is written.").waitFor();
});

test("Markdown: code can be copied, links lead somewhere safe, and a task list is labelled", async () => {
  await using opened = await open("/console/agents/desk/markdown");
  const { page } = opened;
  await write(opened, "markdown");
  await page.getByText("The footnote.").waitFor();
  await page.getByRole("group", { name: "Code in ts" }).waitFor();
  await page.getByRole("button", { name: "Copy" }).waitFor();
  const log = page.getByRole("log");
  expect(await log.getByRole("link", { name: "bad" }).count()).toBe(0);
  expect(await log.getByRole("link", { name: "file" }).getAttribute("href")).toContain(
    "/console/files?path=",
  );
  expect(await log.getByRole("checkbox", { name: "done" }).isChecked()).toBe(true);
  await log.getByRole("link", { name: "1", exact: true }).click();
  expect(page.url()).toBe(`${demo.kit.url}/console/agents/desk/markdown`);
  await expect.poll(() => violations(page)).toEqual([]);
});

test("a run that asks a yes/no question has two buttons", async () => {
  const { run_id } = (await demo.send("/workflows/deploy", {})) as { run_id: string };
  await using opened = await open(`/console/runs/${run_id}`);
  const { page } = opened;
  await page.getByRole("button", { name: "Deny" }).waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText('"approved": true').filter({ visible: true }).first().waitFor();
});

// This test is the last: it ends the server.
test("while the server is gone every screen says so, and continues once it is back", async () => {
  await using opened = await open("/console/agents/desk/write");
  const { page } = opened;
  await page.getByText("It is written.").waitFor();
  await demo.kit.end("SIGKILL");
  await page.getByText("Connection lost, trying again").waitFor();
  for (const name of ["Agents", "Runs", "Guidelines"]) {
    await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name, exact: true }).click();
    await page.getByText("Connection lost, trying again").waitFor();
    await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
  }
  await demo.kit.start();
  await page.getByText("Connection lost").waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Guidelines" }).waitFor();
});
