/** The sender of a request: what `server.auth` returned, or the API key that the request carried. */
export interface Principal {
  /** The id of a key is `key_` and the start of its SHA-256, never the key. */
  readonly id: string;
  /** Other properties that `server.auth` returns, for `server.authorize`. */
  readonly [property: string]: unknown;
}

/** The answer of `server.auth`: whether the request may pass, or its principal. */
export type AuthResult = boolean | Principal;

/**
 * The actions that `server.authorize` decides about.
 *
 * `project.read` covers reading specs and guidelines, `project.write` writing them, `project.verify` starting a run of `kit.verify`,
 * which runs the tests of the project, and `project.run` one of `kit.spec`, whose agents change files and whose closed tasks become
 * commits.
 * `agent.allow` is checked, after `agent.approve`, for a rule that lets later calls run without an approval.
 * `agent.omit_rules` is checked, after `agent.prompt`, for a prompt, a dispatch or a fork that leaves out rules of the project.
 * `mcp.login` is checked for a login at an MCP server, which lends the access of a person to the agents of this server, and for each
 * such server in the list of what waits.
 * `file.read` is checked for lines of any file of the repository. `agent.list` and `workflow.list` are checked for each name in a list; `run.list` and
 * `dispatch.list` once with the filter, and `run.read` and `dispatch.read` then for each record. The list
 * leaves out each refused entry.
 */
export const serviceActions = [
  "project.read",
  "project.write",
  "project.verify",
  "project.run",
  "file.read",
  "agent.list",
  "agent.prompt",
  "agent.dispatch",
  "agent.read",
  "agent.abort",
  "agent.delete",
  "agent.approve",
  "agent.allow",
  "agent.omit_rules",
  "workflow.list",
  "workflow.run",
  "run.list",
  "run.read",
  "run.cancel",
  "run.retry",
  "run.signal",
  "dispatch.list",
  "dispatch.read",
  "dispatch.retry",
  "dispatch.cancel",
  "schedule.list",
  "webhook.list",
  "mcp.login",
  "cluster.read",
  "server.read",
] as const;
export type ServiceAction = (typeof serviceActions)[number];

/** The argument of `server.authorize`. */
export interface AuthorizeRequest {
  /** Undefined if the server requires no key. */
  readonly principal: Principal | undefined;
  readonly action: ServiceAction;
  /**
   * The agent of a request for an agent, its dispatches or approvals; for `dispatch.list`, the agent in the
   * filter.
   */
  readonly agent?: string | undefined;
  /** The id of the agent's instance. */
  readonly instance?: string | undefined;
  /** The workflow of a request for a workflow or a run; for `run.list`, the workflow in the filter. */
  readonly workflow?: string | undefined;
  readonly run_id?: string | undefined;
  /** The webhook of a delivery. */
  readonly webhook?: string | undefined;
  /** The name of the MCP server of a login. */
  readonly mcp_server?: string | undefined;
}

/** Returns whether an action is permitted; every value except `true` refuses it. */
export type AuthorizeHook = (request: AuthorizeRequest) => boolean | Promise<boolean>;
