import { randomUUID } from "node:crypto";

/** A session ends this long after it began. */
export const sessionMs: number = 30 * 60 * 1000;

interface Session {
  readonly customer: string;
  readonly expiresAt: number;
}

/** Sessions in memory. `now` is in milliseconds since 1970. */
export function createSessions(now: () => number): {
  open(customer: string): string;
  customerOf(token: string): string | undefined;
} {
  const sessions = new Map<string, Session>();
  return {
    open(customer) {
      const token = randomUUID();
      sessions.set(token, { customer, expiresAt: now() + sessionMs });
      return token;
    },
    customerOf(token) {
      const session = sessions.get(token);
      if (session === undefined || session.expiresAt <= now()) {
        sessions.delete(token);
        return undefined;
      }
      return session.customer;
    },
  };
}
