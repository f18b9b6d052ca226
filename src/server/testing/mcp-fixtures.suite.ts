import { randomBytes } from "node:crypto";
import {
  acceptedContent,
  type CallToolResult,
  type ContentBlock,
  createRequestStateCodec,
  type InputRequiredResult,
  type InputResponses,
  inputRequired,
  type McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ResourceTemplate,
  type ServerContext,
  type ServerNotifier,
  type Tool,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Service } from "../../app/service/service.ts";
import { type ServedTool, toErrorResult, toInputSchema } from "../../mcp/server/read-tool.ts";
import type { McpContext, McpWork } from "../mcp/mcp-work.ts";
import { dispatchWork, runWork } from "../mcp/mcp-work.ts";
import { capabilitiesOf, tasksExtension, toTask } from "../mcp/work-result.ts";

// The tools, prompts and resources that the official suite of conformance calls by name. Its scenarios fail on a server without them.

const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const text = (value: string): ContentBlock => ({ type: "text", text: value });
const said = (...content: readonly ContentBlock[]): CallToolResult => ({ content: [...content] });
const image: ContentBlock = { type: "image", data: png, mimeType: "image/png" };
const embedded = (uri: string, value: string, mimeType = "text/plain"): ContentBlock => ({
  type: "resource",
  resource: { uri, mimeType, text: value },
});
const elicit = (message: string, field: string, type: "string" | "boolean" = "string") =>
  inputRequired.elicit({
    message,
    requestedSchema: {
      type: "object",
      properties: { [field]: type === "string" ? { type } : { type } },
      required: [field],
    },
  });
const sample = (message: string) =>
  inputRequired.createMessage({
    messages: [{ role: "user", content: { type: "text", text: message } }],
    maxTokens: 50,
  });
const answer = ({ mcpReq }: ServerContext, key: string): Readonly<Record<string, unknown>> | undefined =>
  acceptedContent(mcpReq.inputResponses as InputResponses, key);
/** The text that a model of the client has answered. */
const sampled = ({ mcpReq }: ServerContext, key: string): string | undefined =>
  (mcpReq.inputResponses?.[key] as { readonly content?: { readonly text?: string } } | undefined)?.content
    ?.text;
const rootsOf = ({ mcpReq }: ServerContext): readonly unknown[] | undefined =>
  (mcpReq.inputResponses?.client_roots as { readonly roots?: readonly unknown[] } | undefined)?.roots;

const codec = createRequestStateCodec({ key: randomBytes(32), ttlSeconds: 600 });
/** The state of a call, verified. */
async function stateOf(call: ServerContext): Promise<Readonly<Record<string, unknown>> | undefined> {
  const state = call.mcpReq.requestState<string>();
  if (state === undefined) return undefined;
  try {
    return (await codec.verify(state, call)) as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw Object.assign(new ProtocolError(-32_602, "The state is not valid."), { cause });
  }
}

type Args = Readonly<Record<string, unknown>>;
type Answered = CallToolResult | InputRequiredResult;
type Run = (call: ServerContext, args: Args) => Answered | Promise<Answered>;

function tool(name: string, run: Run, inputSchema: Tool["inputSchema"] = { type: "object" }): ServedTool {
  return {
    definition: { name, description: name, inputSchema },
    call: async (args, call) => await run(call, args),
  };
}

const withState = (name: string): Run => {
  return async (call) =>
    answer(call, "confirm") !== undefined && (await stateOf(call)) !== undefined
      ? said(text("state-ok"))
      : inputRequired({
          inputRequests: { confirm: elicit("Please confirm", "ok", "boolean") },
          requestState: await codec.mint({ name, at: Math.random() }, call),
        });
};

const conditional: Tool["inputSchema"] = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const headerSchema: Tool["inputSchema"] = {
  type: "object",
  properties: { region: { type: "string", "x-mcp-header": "Region" }, level: { type: "integer" } },
};

async function reportProgress({ mcpReq }: ServerContext): Promise<Answered> {
  const progressToken = mcpReq._meta?.progressToken;
  for (const progress of progressToken === undefined ? [] : [0, 50, 100])
    await mcpReq.notify({
      method: "notifications/progress",
      params: { progressToken, progress, total: 100 } as never,
    });
  return said(text(String(progressToken)));
}

async function askManyRounds(call: ServerContext): Promise<Answered> {
  const { round = 0, name } = (await stateOf(call)) ?? {};
  if (round === 0)
    return inputRequired({
      inputRequests: { step1: elicit("Step 1: What is your name?", "name") },
      requestState: await codec.mint({ round: 1 }, call),
    });
  if (round === 1)
    return inputRequired({
      inputRequests: { step2: elicit("Step 2: What is your favorite color?", "color") },
      requestState: await codec.mint({ round: 2, name: answer(call, "step1")?.name }, call),
    });
  return said(text(`${name} likes ${answer(call, "step2")?.color}`));
}

async function askMany(call: ServerContext): Promise<Answered> {
  const name = answer(call, "user_name")?.name;
  const greeting = sampled(call, "greeting");
  const roots = rootsOf(call);
  if (name !== undefined && greeting !== undefined && roots !== undefined)
    return said(text(`${greeting} ${name} ${roots.length}`));
  return inputRequired({
    inputRequests: {
      user_name: elicit("What is your name?", "name"),
      greeting: sample("Generate a greeting"),
      client_roots: inputRequired.listRoots(),
    },
    requestState: await codec.mint({ at: Math.random() }, call),
  });
}

function askWhatIsDeclared(call: ServerContext): Answered {
  const { elicitation, sampling, roots } = capabilitiesOf(call);
  const inputRequests = {
    ...(elicitation ? { user_name: elicit("What is your name?", "name") } : {}),
    ...(sampling ? { greeting: sample("Hello") } : {}),
    ...(roots ? { client_roots: inputRequired.listRoots() } : {}),
  };
  return call.mcpReq.inputResponses !== undefined || Object.keys(inputRequests).length === 0
    ? said(text("done"))
    : inputRequired({ inputRequests });
}

const plainTools = (notify: () => ServerNotifier): readonly ServedTool[] => [
  tool("test_simple_text", () => said(text("This is a simple text response for testing."))),
  tool("test_param_header", () => said(text("The header has the argument.")), {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } },
  }),
  tool("test_image_content", () => said(image)),
  tool("test_audio_content", () => said({ type: "audio", data: wav, mimeType: "audio/wav" })),
  tool("test_embedded_resource", () =>
    said(embedded("test://embedded-resource", "This is an embedded resource content.")),
  ),
  tool("test_multiple_content_types", () =>
    said(
      text("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
  ),
  tool("test_error_handling", () => toErrorResult("This tool intentionally returns an error for testing")),
  tool("test_tool_with_progress", reportProgress),
  tool("test_logging_tool", () => said(text("logged"))),
  tool("test_streaming_elicitation", () => said(text("result frames only"))),
  tool("test_missing_capability", ({ mcpReq }) =>
    mcpReq.inputResponses?.answer === undefined
      ? inputRequired({ inputRequests: { answer: sample("ping") } })
      : said(text("done")),
  ),
  tool("test_x_mcp_header", (_, { region }) => said(text(`region=${String(region)}`)), headerSchema),
  tool("test_trigger_tool_change", () => {
    notify().toolsChanged();
    return said(text("published"));
  }),
  tool("test_trigger_prompt_change", () => {
    notify().promptsChanged();
    return said(text("published"));
  }),
  tool("json_schema_2020_12_tool", () => said(text("ok")), conditional),
];

const askingTools: readonly ServedTool[] = [
  tool("test_input_required_result_elicitation", (call) => {
    const name = answer(call, "user_name")?.name;
    return typeof name === "string"
      ? said(text(`Hello, ${name}!`))
      : inputRequired({ inputRequests: { user_name: elicit("What is your name?", "name") } });
  }),
  tool("test_input_required_result_sampling", (call) => {
    const reply = sampled(call, "capital_question");
    return reply === undefined
      ? inputRequired({ inputRequests: { capital_question: sample("What is the capital of France?") } })
      : said(text(reply));
  }),
  tool("test_input_required_result_list_roots", (call) => {
    const roots = rootsOf(call);
    return roots === undefined
      ? inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
      : said(text(JSON.stringify(roots)));
  }),
  tool("test_input_required_result_request_state", withState("state")),
  tool("test_input_required_result_tampered_state", withState("tampered")),
  tool("test_input_required_result_multiple_inputs", askMany),
  tool("test_input_required_result_multi_round", askManyRounds),
  tool("test_input_required_result_capabilities", askWhatIsDeclared),
];

/** The suite's tasks are runs and dispatches of kit. */
function taskTools(service: Service): readonly ServedTool[] {
  const context = {
    service,
    authorization: { permitted: async (items: unknown) => items },
  } as unknown as McpContext;
  const canTask = (call: ServerContext): boolean =>
    capabilitiesOf(call).extensions?.[tasksExtension] !== undefined;
  const needTasks = (call: ServerContext): void => {
    if (canTask(call)) return;
    throw new MissingRequiredClientCapabilityError({
      requiredCapabilities: { extensions: { [tasksExtension]: {} } },
    });
  };
  const handOut = async (work: McpWork): Promise<Answered> => {
    const record = await work.record();
    if (record === undefined) throw new Error("It is gone.");
    return { ...(await toTask(work, record)), resultType: "task", content: [] };
  };
  const compute = async (call: ServerContext, payload: Args): Promise<Answered> => {
    const { run_id } = await service.startRun("compute", payload);
    if (canTask(call)) return await handOut(runWork(context, undefined, { run_id, workflow: "compute" }));
    const { result } = (await service.engine.awaitRun(run_id)) ?? {};
    return said(text(String(Object(result).text)));
  };
  const pay = async (message: string): Promise<Answered> => {
    const target = {
      agent: "careful",
      instance_id: `suite-${randomBytes(8).toString("hex")}`,
      session: "default",
    };
    const { dispatch_id } = await service.dispatch(target, message);
    return await handOut(dispatchWork(context, undefined, { dispatch_id, ...target }));
  };
  return [
    tool(
      "greet",
      (_, { name }) => said(text(`Hello, ${String(name)}!`)),
      toInputSchema(z.object({ name: z.string() })),
    ),
    tool("slow_compute", (call, { seconds = 0 }) => compute(call, { seconds })),
    tool("failing_job", async (call) => {
      needTasks(call);
      return await compute(call, { seconds: 1, fails: true });
    }),
    tool("confirm_delete", () => pay("pay 1")),
    tool("multi_input", () => pay("pay 2")),
    tool("test_tool_with_task", async (call) => {
      needTasks(call);
      const name = answer(call, "user_name")?.name;
      if (name !== undefined) return await compute(call, { seconds: 1, text: `Hello, ${String(name)}` });
      return inputRequired({
        inputRequests: { user_name: elicit("What is your name?", "name") },
        requestState: await codec.mint({ at: 1 }, call),
      });
    }),
  ];
}

function addResourceFixtures(server: McpServer): void {
  const add = (uri: string, content: object, mimeType = "text/plain"): void => {
    const name = uri.slice("test://".length);
    server.registerResource(name, uri, { title: name, description: name, mimeType }, ({ href }) => ({
      contents: [{ uri: href, mimeType, ...content } as never],
    }));
  };
  add("test://static-text", { text: "This is the content of the static text resource." });
  add("test://static-binary", { blob: png }, "image/png");
  add("test://watched-resource", { text: "watched" });
  const mimeType = "application/json";
  server.registerResource(
    "template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { title: "template", description: "template", mimeType },
    ({ href }, { id }) => {
      const value = { id, templateTest: true, data: `Data for ID: ${String(id)}` };
      return { contents: [{ uri: href, mimeType, text: JSON.stringify(value) }] };
    },
  );
}

function addPromptFixtures(server: McpServer): void {
  const user = (...contents: readonly ContentBlock[]) => ({
    messages: contents.map((content) => ({ role: "user" as const, content })),
  });
  const about = (name: string) => ({ title: name, description: name });
  server.registerPrompt("test_simple_prompt", about("test_simple_prompt"), () =>
    user(text("This is a simple prompt for testing.")),
  );
  server.registerPrompt(
    "test_prompt_with_arguments",
    { ...about("test_prompt_with_arguments"), argsSchema: z.object({ arg1: z.string(), arg2: z.string() }) },
    ({ arg1, arg2 }) => user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { ...about("test_prompt_with_embedded_resource"), argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) =>
      user(
        embedded(resourceUri, "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
      ),
  );
  server.registerPrompt("test_prompt_with_image", about("test_prompt_with_image"), () =>
    user(image, text("Please analyze the image above.")),
  );
  server.registerPrompt(
    "test_input_required_result_prompt",
    about("test_input_required_result_prompt"),
    (call) => {
      const context = answer(call, "user_context")?.context;
      return typeof context === "string"
        ? user(text(`Use the following context: ${context}`))
        : inputRequired({
            inputRequests: { user_context: elicit("What context should the prompt use?", "context") },
          });
    },
  );
}

/** Adds everything that the suite calls, beside kit's own tools; `service` has an agent `careful` and a workflow `compute`. */
export function createFixtures(
  service: () => Service,
): (server: McpServer, notify: () => ServerNotifier) => readonly ServedTool[] {
  return (server, notify) => {
    addResourceFixtures(server);
    addPromptFixtures(server);
    const changes = { listChanged: true };
    server.server.registerCapabilities({ tools: changes, prompts: changes, resources: changes });
    return [...plainTools(notify), ...askingTools, ...taskTools(service())];
  };
}
