import type { Agent } from "../agents/harness.ts";
import type { Session } from "../agents/session/session.ts";
import type { AgentJournal } from "./agent-journal.ts";
import { journalSession } from "./journal-session.ts";

/**
 * An agent whose operations are steps of a run: each gives its recorded result in a replay. What only looks
 * (history, files) is not recorded, and neither is Python, whose variables live in the process.
 */
export function journalAgent(agent: Agent, journal: AgentJournal): Agent {
  const { sessions } = agent;
  const wrap = (name: string): Session => journalSession(agent.session(name), agent.name, journal);
  const record = <Value>(what: string, name: string, work: () => Promise<Value>): Promise<Value> =>
    journal.step(`${what} ${agent.name}/${name}`, work);
  return {
    name: agent.name,
    id: agent.id,
    profile: agent.profile,
    approvals: agent.approvals,
    get busy() {
      return agent.busy;
    },
    session: (name = "default") => wrap(name),
    sessions: {
      async create(name) {
        await record("create session", name, async () => {
          await sessions.create(name);
          return null;
        });
        return wrap(name);
      },
      async get(name) {
        const known = await record(
          "look for session",
          name,
          async () => (await sessions.get(name)) !== undefined,
        );
        return known ? wrap(name) : undefined;
      },
      list: () => journal.step(`list sessions ${agent.name}`, () => sessions.list()),
      async delete(name) {
        await record("delete session", name, async () => {
          await sessions.delete(name);
          return null;
        });
      },
    },
    onEvent: (listener) => agent.onEvent(listener),
    subscribe: (listener) => agent.onEvent(listener),
    close: (options) => agent.close(options),
  };
}
