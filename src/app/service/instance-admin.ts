import { KitError } from "../../base/kit-error.ts";
import { agentStream, type Engine } from "../../engine/contract.ts";
import type { DispatchStatus } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { HostedApp } from "../runtime/hosted-app.ts";
import type { InstanceTarget, Service } from "./service.ts";
import type { SessionWork } from "./session-work.ts";

interface InstanceAdminOptions {
  readonly app: HostedApp;
  readonly engine: Engine;
  readonly work: SessionWork;
}

/** Looks at instances, stops them, and removes them. */
export function createInstanceAdmin({
  app,
  engine,
  work,
}: InstanceAdminOptions): Pick<Service, "history" | "abort" | "remove" | "events"> {
  /** Takes back the accepted inputs of an instance, or of one of its sessions, that are in a state. */
  const cancel = async (
    { agent, instance_id, session }: InstanceTarget & { readonly session?: string | undefined },
    status: DispatchStatus,
  ): Promise<boolean> => {
    let cancelled = false;
    let cursor: string | undefined;
    do {
      const page = await engine.listDispatches({
        agent,
        instance_id,
        status,
        limit: 1_000,
        ...(cursor === undefined ? {} : { cursor }),
      });
      for (const dispatch of page.items) {
        if (session !== undefined && dispatch.session !== session) continue;
        if (await engine.cancelDispatch(dispatch.dispatch_id)) cancelled = true;
      }
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    return cancelled;
  };
  const abort: Service["abort"] = async (target) => {
    app.checkAgent(target.agent);
    const running = work.running(target);
    // An accepted input is cancelled, or the engine would take its end for a failure.
    const cancelled = await cancel(target, "running");
    const aborted = await Promise.all(running.map((input) => input.abort()));
    await Promise.all(running.map(({ ended }) => ended));
    return cancelled || aborted.includes(true);
  };

  return {
    async history({ agent, instance_id, session }) {
      app.checkAgent(agent);
      const live = await app.instance(agent, instance_id);
      const known = await live.sessions.get(session);
      if (known !== undefined) return known.history();
      throw new KitError({
        code: "not_found",
        message: `The instance "${instance_id}" has no session "${session}".`,
      });
    },
    abort,
    async remove(target) {
      const { agent, instance_id } = target;
      app.checkAgent(agent);
      const taken = await cancel(target, "queued");
      const aborted = await abort(target);
      const live = await app.instance(agent, instance_id);
      const sessions = await live.sessions.list();
      for (const { session, parent } of sessions)
        if (parent === undefined) await live.sessions.delete(session);
      await app.release(agent, instance_id);
      const stream = agentStream(agent, instance_id);
      const said = (await engine.events.last(stream)) > 0;
      await engine.events.delete(stream);
      return taken || aborted || sessions.length > 0 || said;
    },
    events(target, { after, session, signal }) {
      app.checkAgent(target.agent);
      const all = engine.events.subscribe(agentStream(target.agent, target.instance_id), {
        ...(after === undefined ? {} : { after }),
        ...(signal === undefined ? {} : { signal }),
      });
      return session === undefined ? all : ofSession(all, session);
    },
  };
}

/** The events of a session, and of the tasks below it, whose names begin with its own. */
async function* ofSession(events: AsyncIterable<KitEvent>, session: string): AsyncGenerator<KitEvent> {
  const below = `${session.slice(0, 80)}.task_`;
  for await (const event of events) {
    if (event.type === "gap" || event.session === session || event.session?.startsWith(below)) yield event;
  }
}
