import { withDeadline } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import type { AuthorizeHook, AuthorizeRequest } from "../../protocol/access.ts";
import type { ServerLimits } from "../limits.ts";
import type { RouteRequest } from "../route.ts";

/** The answers of the configuration's `authorize`. Without a hook, every sender that the server lets in may do everything. */
export interface Authorization {
  /** Throws `forbidden` for what is refused; what the hook throws, or that it does not answer, refuses as well. */
  check(request: AuthorizeRequest): Promise<void>;
  /**
   * For work that was permitted just now and goes on: a function to call before each item that it gives. Asks again once
   * the last answer is `permissionMs` old; throws what `check` throws.
   */
  whilePermitted(request: AuthorizeRequest): () => Promise<void>;
  /** The items of a list that may be seen, in their order; `toRequest` gives the question about each. */
  permitted<Item>(
    items: readonly Item[],
    toRequest: (item: Item) => AuthorizeRequest,
  ): Promise<readonly Item[]>;
}

export function createAuthorization(
  hook: AuthorizeHook | undefined,
  { hookTimeoutMs: timeoutMs, permissionMs }: Pick<ServerLimits, "hookTimeoutMs" | "permissionMs">,
): Authorization {
  const may = async (request: AuthorizeRequest): Promise<boolean> =>
    hook === undefined ||
    (await answerInTime(hook(request), { name: "server.authorize", timeoutMs })) === true;
  const check = async (request: AuthorizeRequest): Promise<void> => {
    if (await may(request)) return;
    throw new KitError({ code: "forbidden", message: "This is not allowed." });
  };
  return {
    check,
    whilePermitted(request) {
      let askedAt = performance.now();
      return async () => {
        const now = performance.now();
        if (hook === undefined || now - askedAt < permissionMs) return;
        await check(request);
        askedAt = now;
      };
    },
    async permitted(items, toRequest) {
      if (hook === undefined) return items;
      const answers = await Promise.all(items.map((item) => may(toRequest(item))));
      return items.filter((_, position) => answers[position]);
    },
  };
}

/** Refuses a request for specs or guidelines of who may not read the project. */
export function guardProject({ check }: Authorization): (request: RouteRequest) => Promise<void> {
  return ({ principal }) => check({ principal, action: "project.read" });
}

/** A function of the configuration that says who a sender is, or what a sender may do. */
interface AskedHook {
  /** Its key in the configuration. */
  readonly name: string;
  /** How long it may take. */
  readonly timeoutMs: number;
}

/**
 * Waits for a hook's answer. One that never comes would keep its request, or the connection of a WebSocket's
 * handshake, for ever. Throws what the hook threw, and an `Error` when its time is over: both are errors of ours,
 * which refuse the request and are told to the operator.
 */
export async function answerInTime<Answer>(
  answer: Answer | Promise<Answer>,
  { name, timeoutMs }: AskedHook,
): Promise<Answer> {
  // Most hooks answer at once, and need no clock.
  if (!(answer instanceof Promise)) return answer;
  return await withDeadline(answer, {
    ms: timeoutMs,
    onTimeout: () => new Error(`${name} did not answer within ${timeoutMs} ms.`),
  });
}
