import type { App } from "../../app/service/app.ts";
import type { LoadedWebhook, SourceProblem } from "../../app/sources/discover-sources.ts";
import { webhooksWithoutSecret } from "../../app/sources/webhooks-without-secret.ts";
import { type Command, defineCommand } from "../command.ts";
import { tryProjectAgents } from "../doctor/check-agents.ts";
import type { Output } from "../print/output.ts";
import { type Column, count, printTable } from "../print/table.ts";
import { safeLine } from "../text/safe-text.ts";
import { noteOfUnrunCode, withProject } from "../with-project.ts";

export const routes: Command = defineCommand({
  options: {},
  examples: ["kit routes", "kit routes --json"],
  details:
    "Loads the files of src/agents, src/workflows and src/webhooks as 'kit start' does, and lists their schedules and the files that it cannot use.",
  run: (_line, context) =>
    withProject(context, async ({ project, loaded }) => {
      noteOfUnrunCode(loaded, context);
      const { openProjectService } = await import("../../app/service/open-project-service.ts");
      const { app } = await openProjectService({
        project,
        // It only lists, and sends nothing.
        loaded: { ...loaded, untrusted: [] },
        works: false,
        code: loaded.untrustedCode !== true,
      });
      try {
        const tried =
          loaded.untrustedCode === true
            ? []
            : await tryProjectAgents(app.agents(), { root: project.root, loaded });
        const listed = describe(app, tried, loaded.config.server?.expose === "all");
        if (context.json) context.output.json(listed);
        else printRoutes(context.output, listed, webhooksWithoutSecret(app.webhooks(), app.env));
        return listed.problems.length === 0 ? 0 : 1;
      } finally {
        await app.close();
      }
    }),
});

type Found = ReturnType<typeof describe>;

function describe(app: App, tried: readonly SourceProblem[], exposesAll: boolean) {
  return {
    agents: app.agents().map(({ name, path, triggers }) => ({
      name,
      path,
      triggers,
      ...(triggers.webhook || exposesAll ? {} : { dev_only: true }),
    })),
    workflows: app.workflows().map(({ name, path, schedules }) => ({ name, path, schedules })),
    webhooks: app.webhooks().map(({ name, path }) => ({ name, path })),
    problems: [...app.problems(), ...tried].map(({ path, message }) => ({ path, message })),
  };
}

interface Row {
  readonly address: string;
  readonly path: string;
  readonly reachable: boolean;
  /** Further remarks. */
  readonly remark: string;
}

const columns: readonly Column<Row>[] = [
  {
    header: "ROUTE",
    value: ({ address }) => address,
    style: ({ reachable }) => (reachable ? "cyan" : "dim"),
  },
  { header: "FILE", value: ({ path }) => path, style: () => "dim" },
  { header: "", value: ({ remark }) => remark, style: () => "dim" },
];

function printRoutes(
  output: Output,
  { agents, workflows, webhooks, problems }: Found,
  secretless: readonly LoadedWebhook[],
): void {
  const rows: readonly Row[] = [
    ...agents.map(({ name, path, dev_only }) => ({
      address: `POST /agents/${name}/{id}`,
      path,
      reachable: dev_only === undefined,
      remark: dev_only === undefined ? "" : "kit dev only",
    })),
    ...workflows.map(({ name, path, schedules }) => ({
      address: `POST /workflows/${name}`,
      path,
      reachable: true,
      remark: schedules.map(({ cron, timezone }) => `${cron} ${timezone ?? "UTC"}`).join(", "),
    })),
    ...webhooks.map(({ name, path }) => ({
      address: `POST /webhooks/${name}`,
      path,
      reachable: true,
      remark: secretless.some((webhook) => webhook.name === name) ? "no secret: refuses every delivery" : "",
    })),
  ];
  for (const { path, message } of problems) {
    output.note(`${output.noteStyle("red", "error:")} ${safeLine(path)}: ${safeLine(message)}`);
  }
  if (rows.length === 0) {
    output.note("There is no agent, workflow or webhook here. 'kit init' makes a project that has some.");
    return;
  }
  printTable(output, rows, columns);
  const served = rows.filter(({ reachable }) => reachable).length;
  const rest =
    served === rows.length
      ? ""
      : " An agent is served when its file says export const triggers = { webhook: true }.";
  const them = served === rows.length ? "them" : `${served} of them`;
  output.note(output.noteStyle("dim", `${count(rows.length, "route")}. 'kit start' serves ${them}.${rest}`));
}
