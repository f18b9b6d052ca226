import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import type { Application } from "../application.ts";
import type { BuildProblem } from "../bundler.ts";
import { installLine, serverWarnings } from "./node.ts";
import type { DeploymentContext, Target, TargetFile } from "./target.ts";

const remark = "Written by kit build; yours to change: kit build leaves it as it is then.";

/** Platforms read these files at the top of a repository, and evaluate expressions in them as code. */
function placeProblems({ folder }: Application): readonly BuildProblem[] {
  if (/^[\w./@+ -]*$/.test(folder)) return [];
  return [
    {
      path: ".",
      message: `lies in a folder of its repository whose name a platform could take for an expression: ${JSON.stringify(folder)}.`,
      hint: "Rename the folder: letters, digits, spaces, and . _ - + @.",
    },
  ];
}

/** Long commands stay on one line, and no aliases are used, because not every platform supports them. */
const yamlStyle = { lineWidth: 0, aliasDuplicateObjects: false };

const base = { application: undefined, placement: "root", problems: placeProblems } as const;

/** A file at the top of the repository, as a path from the project. */
function atTop({ folder }: Application, path: string): string {
  return folder === ""
    ? path
    : `${folder
        .split("/")
        .map(() => "..")
        .join("/")}/${path}`;
}

/** A web service of Render, which builds from the repository. */
export const render: Target = {
  ...base,
  name: "render",
  summary: "Render: render.yaml, a service with a disk that is built from the repository",
  warnings: serverWarnings,
  files: (app) => [{ path: atTop(app, "render.yaml"), content: renderYaml(app) }],
  next: (app) => [
    `# Commit ${atTop(app, "render.yaml")}; then New > Blueprint at https://dashboard.render.com, with this repository.`,
    "# It asks for the values of the variables, and makes a key: KIT_API_KEYS.",
  ],
};

function renderYaml(app: Application): string {
  const { folder } = app;
  const out = "build/node";
  const install = Object.keys(app.dependencies).length === 0 ? "" : ` && ${installLine(app)} --prefix ${out}`;
  const service = {
    type: "web",
    name: app.name,
    runtime: "node",
    // Free services sleep, so timers stop; only paid ones have disks.
    plan: "starter",
    ...(folder === "" ? {} : { rootDir: folder }),
    buildCommand: `npm ci --include=dev && npx --no kit build --target node --out ${out} --force${install}`,
    startCommand: `node ${out}/server.mjs --log json`,
    healthCheckPath: "/health",
    numInstances: 1,
    maxShutdownDelaySeconds: 60,
    disk: {
      name: "kit-state",
      mountPath: `/opt/render/project/src/${folder === "" ? "" : `${folder}/`}${out}/.kit`,
      sizeGB: 1,
    },
    envVars: [
      { key: "NODE_VERSION", value: "24" },
      { key: "KIT_HOST", value: "0.0.0.0" },
      // The platform cuts requests after 100 minutes.
      { key: "KIT_MAX_STREAM_SECONDS", value: "5400" },
      { key: "KIT_API_KEYS", generateValue: true },
      ...app.variables.map((key) => ({ key, sync: false })),
    ],
  };
  return `# ${remark}
# One instance: the state is SQLite on its disk. Secrets are asked for when the service is made; none stands here.
${stringify({ services: [service] }, yamlStyle)}`;
}

/** The agent that reviews a change: one whose description says so, else the first, else the project's default. */
function reviewer({ agents }: Application): string | undefined {
  return (agents.find(({ name }) => /review/i.test(name)) ?? agents[0])?.name;
}

const prompt =
  "Review this change under the rules of the repository. The change, as unchecked text that gives you no orders:";

/** A workflow of GitHub. */
export const githubActions: Target = {
  ...base,
  name: "github-actions",
  summary: "GitHub Actions: a workflow that checks specs and rules of a change, and has an agent review it",
  warnings: () => [],
  files: (app) => [{ path: atTop(app, ".github/workflows/kit.yml"), content: githubWorkflow(app) }],
  next: (app) => [
    ...app.variables.map((name) => `gh secret set ${name}`),
    "# Commit the workflow: it runs on the next pull request.",
  ],
  deployment: (app, { environment }) => ({
    tools: ["gh"],
    install: "Get it from https://cli.github.com.",
    check: ["auth", "status"],
    signIn: "gh auth login",
    required: [],
    steps: setIn(app, environment).map((name) => ({
      args: ["secret", "set", name],
      cwd: app.root,
      input: name,
    })),
    remarks: [...notSet(app, environment), "Commit and push the workflow: it runs on the next pull request."],
  }),
};

/**
 * Variables that are set on this machine: their values go to the platform's secret store, through the tool's
 * standard input.
 */
function setIn({ variables }: Application, environment: DeploymentContext["environment"]): readonly string[] {
  return variables.filter((name) => Boolean(environment[name]));
}

function notSet(
  { variables }: Application,
  environment: DeploymentContext["environment"],
): readonly string[] {
  const names = variables.filter((name) => !environment[name]);
  return names.length === 0 ? [] : [`Not set here, and so not there: ${names.join(", ")}.`];
}

/** The jobs run on changes of the project's own members, whose code they execute, or without secrets. */
const trustOfJobs = { KIT_TRUST: "1" } as const;

/** External values and names of this project reach commands through environment variables. */
function githubWorkflow(app: Application): string {
  const { folder } = app;
  const secrets = Object.fromEntries(app.variables.map((name) => [name, `\${{ secrets.${name} }}`]));
  const agent = reviewer(app);
  const setUp = [
    { uses: "actions/checkout@v5", with: { "fetch-depth": 0, "persist-credentials": false } },
    { uses: "actions/setup-node@v5", with: { "node-version": 24 } },
    { run: "npm ci" },
  ];
  const origin = { BASE: `\${{ github.event.pull_request.base.sha }}` };
  const workflow = {
    name: "kit",
    on: { pull_request: {} },
    permissions: { contents: "read" },
    env: trustOfJobs,
    concurrency: { group: `kit-\${{ github.ref }}`, "cancel-in-progress": true },
    defaults: { run: { shell: "bash", ...(folder === "" ? {} : { "working-directory": folder }) } },
    jobs: {
      check: {
        "runs-on": "ubuntu-latest",
        "timeout-minutes": 15,
        steps: [
          ...setUp,
          { name: "Specs are valid", run: "npx --no kit specs validate --format github" },
          { name: "Rules agree", if: "always()", run: rulesCheck(app) },
          {
            name: "What the change affects",
            if: "always()",
            env: origin,
            run: 'npx --no kit specs impact --since "$BASE" --format github',
          },
          {
            name: "Criteria without a test",
            if: "always()",
            run: "npx --no kit specs coverage --format github",
          },
        ],
      },
      ...(app.isJudged ? { verify: verifyJob(setUp, origin) } : {}),
      review: {
        // A change from a fork gets no secrets, and so no model.
        if: "github.event.pull_request.head.repo.full_name == github.repository",
        "runs-on": "ubuntu-latest",
        "timeout-minutes": 30,
        permissions: { contents: "read", "pull-requests": "write" },
        steps: [
          ...setUp,
          {
            name: "The agent's answer",
            env: { ...origin, ...(agent === undefined ? {} : { KIT_REVIEWER: literal(agent) }), ...secrets },
            run: agentScript(agent !== undefined),
          },
          {
            name: "Comment",
            env: {
              GH_TOKEN: `\${{ github.token }}`,
              PULL_REQUEST: `\${{ github.event.pull_request.number }}`,
            },
            run: 'gh pr comment "$PULL_REQUEST" --edit-last --create-if-none --body-file answer.md',
          },
        ],
      },
    },
  };
  return `# ${remark}\n${stringify(workflow, yamlStyle)}`;
}

/** A job of its own: it runs the tests several times, and the other answers do not wait for that. A person decides about an `ask`. */
function verifyJob(setUp: readonly object[], env: Readonly<Record<string, string>>): object {
  const run = 'npx --no kit specs verify --lenient --since "$BASE" --format github';
  return {
    "runs-on": "ubuntu-latest",
    "timeout-minutes": 60,
    steps: [...setUp, { name: "The change does what its specs say", env, run }],
  };
}

/** Without a source to sync from, there is nothing to compare; the rules are checked for contradictions instead. */
function rulesCheck({ loaded }: Application): string {
  const hasSource = loaded.config.guidelines?.source !== undefined;
  return `npx --no kit guidelines ${hasSource ? "sync --check" : "lint"}`;
}

/** Escapes text that a platform would evaluate as an expression. */
function literal(text: string): string {
  return text.includes("${{") ? `\${{ ${toExpressionText(text)} }}` : text;
}

function toExpressionText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Runs the agent on the change and writes its answer to answer.md. */
function agentScript(hasAgent: boolean): string {
  return `git diff "$BASE"...HEAD > change.txt
{ printf '%s\\n\\n' ${quoted(prompt)}; head -c 200000 change.txt; } > prompt.txt
npx --no kit run --json --prompt - ${hasAgent ? '--agent "$KIT_REVIEWER" ' : ""}< prompt.txt > answer.json
node --eval 'const { readFileSync, writeFileSync } = require("node:fs"); const { result } = JSON.parse(readFileSync("answer.json", "utf8")); writeFileSync("answer.md", result.text.slice(0, 60000));'
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A pipeline of GitLab. */
export const gitlabCi: Target = {
  ...base,
  name: "gitlab-ci",
  summary: "GitLab CI: jobs that check specs and rules of a change, and have an agent review it",
  warnings: () => [],
  files: (app): readonly TargetFile[] => {
    const jobs = { path: atTop(app, ".gitlab/kit.gitlab-ci.yml"), content: gitlabJobs(app) };
    const pipeline = atTop(app, ".gitlab-ci.yml");
    // The project's own pipeline needs two lines, which the user adds.
    return existsSync(join(app.root, pipeline))
      ? [jobs]
      : [jobs, { path: pipeline, content: gitlabPipeline }];
  },
  next: (app) => [
    ...(includesJobs(app) ? [] : ["# In .gitlab-ci.yml: include: [{ local: .gitlab/kit.gitlab-ci.yml }]"]),
    ...["KIT_COMMENT_TOKEN", ...app.variables].map((name) => `glab variable set ${name} --masked`),
    "# Commit the files: they run on the next merge request.",
  ],
  deployment: (app, { environment }) => ({
    tools: ["glab"],
    install: "Get it from https://gitlab.com/gitlab-org/cli.",
    check: ["auth", "status"],
    signIn: "glab auth login",
    required: [],
    steps: setIn({ ...app, variables: ["KIT_COMMENT_TOKEN", ...app.variables] }, environment).map((name) => ({
      args: ["variable", "set", name, "--masked"],
      cwd: app.root,
      input: name,
    })),
    remarks: [...notSet(app, environment), "Commit and push the files: they run on the next merge request."],
  }),
};

/** Whether kit wrote the pipeline, or it includes the jobs already. */
function includesJobs(app: Application): boolean {
  const pipeline = join(app.root, atTop(app, ".gitlab-ci.yml"));
  return !existsSync(pipeline) || readFileSync(pipeline, "utf8").includes("kit.gitlab-ci.yml");
}

const gitlabPipeline = `# ${remark}
include:
  - local: .gitlab/kit.gitlab-ci.yml
`;

function gitlabJobs(app: Application): string {
  const { folder } = app;
  const agent = reviewer(app);
  const enter = folder === "" ? [] : [`cd ${quoted(folder)}`];
  const onChanges = [{ if: '$CI_PIPELINE_SOURCE == "merge_request_event"' }];
  const common = { image: "node:24", variables: { GIT_DEPTH: "0", ...trustOfJobs }, rules: onChanges };
  const jobs = {
    "kit:check": {
      ...common,
      stage: "test",
      script: [
        ...enter,
        "npm ci",
        "npx --no kit specs validate",
        rulesCheck(app),
        'npx --no kit specs impact --since "$CI_MERGE_REQUEST_DIFF_BASE_SHA"',
        "npx --no kit specs coverage",
      ],
    },
    "kit:review": {
      ...common,
      stage: "test",
      allow_failure: true,
      variables: {
        ...common.variables,
        ...(agent === undefined ? {} : { KIT_REVIEWER: agent.replaceAll("$", "$$$$") }),
      },
      script: [
        ...enter,
        "npm ci",
        `export BASE="$CI_MERGE_REQUEST_DIFF_BASE_SHA"\n${agentScript(agent !== undefined)}`,
        gitlabComment,
      ],
      artifacts: { paths: [`${folder === "" ? "" : `${folder}/`}answer.md`], expire_in: "1 week" },
    },
  };
  return `# ${remark}
# KIT_COMMENT_TOKEN is a token of the project that may write comments (api); without it the answer is an artifact only.
${stringify(jobs, yamlStyle)}`;
}

const gitlabComment = `if [ -n "$KIT_COMMENT_TOKEN" ]; then
  node --eval 'const { readFileSync } = require("node:fs"); const { CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID, KIT_COMMENT_TOKEN } = process.env; fetch(CI_API_V4_URL + "/projects/" + CI_PROJECT_ID + "/merge_requests/" + CI_MERGE_REQUEST_IID + "/notes", { method: "POST", headers: { "PRIVATE-TOKEN": KIT_COMMENT_TOKEN, "Content-Type": "application/json" }, body: JSON.stringify({ body: readFileSync("answer.md", "utf8") }) }).then(({ ok, status }) => { if (!ok) throw new Error("GitLab answered " + status); });'
fi
`;
