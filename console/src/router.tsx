import {
  createRootRoute,
  createRoute,
  createRouter,
  Link,
  lazyRouteComponent,
  type RouteComponent,
} from "@tanstack/react-router";
import type { ReactNode } from "react";
import { loadScreen } from "./api/load-screen.tsx";
import { serverRoot } from "./api/server.ts";
import { HomeScreen } from "./screens/home/home-screen.tsx";
import { Shell } from "./shell/shell.tsx";
import { Page } from "./ui/page.tsx";
import { ErrorNotice, Loading, Notice } from "./ui/states.tsx";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

/** The query of an address, as the filters of a screen. */
export type Search = Readonly<Record<string, string | undefined>>;

function readSearch(search: Record<string, unknown>): Search {
  return Object.fromEntries(
    Object.entries(search).flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number" ? [[name, String(value)]] : [],
    ),
  );
}

function screen<const Path extends string>(path: Path, load: () => Promise<RouteComponent>) {
  return createRoute({
    getParentRoute: () => root,
    path,
    validateSearch: readSearch,
    component: lazyRouteComponent(async () => ({ default: await loadScreen(load) })),
  });
}

/** Each screen is loaded when it is opened, except Home, which most visits begin with. */
const screens = [
  createRoute({ getParentRoute: () => root, path: "/", validateSearch: readSearch, component: HomeScreen }),
  screen("/console/specs", async () => (await import("./screens/specs/specs-screen.tsx")).SpecsScreen),
  screen(
    "/console/specs/criteria",
    async () => (await import("./screens/specs/criteria-screen.tsx")).CriteriaScreen,
  ),
  screen(
    "/console/specs/impact",
    async () => (await import("./screens/specs/impact-screen.tsx")).ImpactScreen,
  ),
  screen(
    "/console/specs/problems",
    async () => (await import("./screens/specs/problems-screen.tsx")).ProblemsScreen,
  ),
  screen("/console/specs/stale", async () => (await import("./screens/specs/stale-screen.tsx")).StaleScreen),
  screen("/console/files", async () => (await import("./screens/specs/file-screen.tsx")).FileScreen),
  screen("/console/specs/$id", async () => (await import("./screens/specs/spec-screen.tsx")).SpecScreen),
  screen(
    "/console/guidelines",
    async () => (await import("./screens/guidelines/guidelines-screen.tsx")).GuidelinesScreen,
  ),
  screen(
    "/console/guidelines/explain",
    async () => (await import("./screens/guidelines/explain-screen.tsx")).ExplainScreen,
  ),
  screen(
    "/console/guidelines/lint",
    async () => (await import("./screens/guidelines/lint-screen.tsx")).LintScreen,
  ),
  screen(
    "/console/guidelines/sync",
    async () => (await import("./screens/guidelines/sync-screen.tsx")).SyncScreen,
  ),
  screen(
    "/console/guidelines/$id",
    async () => (await import("./screens/guidelines/guideline-screen.tsx")).GuidelineScreen,
  ),
  screen("/console/agents", async () => (await import("./screens/agents/agents-screen.tsx")).AgentsScreen),
  screen(
    "/console/agents/$name",
    async () => (await import("./screens/agents/agents-screen.tsx")).AgentScreen,
  ),
  screen(
    "/console/agents/$name/$id",
    async () => (await import("./screens/agents/instance-screen.tsx")).InstanceScreen,
  ),
  screen(
    "/console/agents/$name/$id/trace",
    async () => (await import("./screens/trace/trace-screen.tsx")).TraceScreen,
  ),
  screen(
    "/console/agents/$name/$id/compare",
    async () => (await import("./screens/trace/compare-screen.tsx")).CompareScreen,
  ),
  screen(
    "/console/approvals",
    async () => (await import("./screens/approvals/waiting-screen.tsx")).WaitingScreen,
  ),
  screen("/console/runs", async () => (await import("./screens/runs/runs-screen.tsx")).RunsScreen),
  screen("/console/runs/$runId", async () => (await import("./screens/runs/run-screen.tsx")).RunScreen),
  screen(
    "/console/schedules",
    async () => (await import("./screens/runs/schedules-screen.tsx")).SchedulesScreen,
  ),
  screen(
    "/console/deliveries",
    async () => (await import("./screens/runs/deliveries-screen.tsx")).DeliveriesScreen,
  ),
  screen(
    "/console/dispatches",
    async () => (await import("./screens/runs/dispatches-screen.tsx")).DispatchesScreen,
  ),
  screen(
    "/console/dispatches/$dispatchId",
    async () => (await import("./screens/runs/dispatches-screen.tsx")).DispatchScreen,
  ),
  screen(
    "/console/cluster",
    async () => (await import("./screens/cluster/cluster-screen.tsx")).ClusterScreen,
  ),
  screen("/console/server", async () => (await import("./screens/server/server-screen.tsx")).ServerScreen),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(screens),
  basepath: serverRoot.pathname,
  defaultPreload: "intent",
  scrollRestoration: true,
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: ({ error, reset }) => <ErrorNotice error={error} onRetry={reset} />,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

function NotFound(): ReactNode {
  return (
    <Page title="Not found">
      <Notice icon="search" title="Screen not found">
        The address may be from another version of kit.{" "}
        <Link to="/" className="text-accent underline">
          Home
        </Link>
      </Notice>
    </Page>
  );
}
