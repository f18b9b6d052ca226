import { a2aRoutes } from "./a2a-routes.ts";
import { agUiRoutes } from "./ag-ui-routes.ts";
import { agentRoutes, approvalRoutes, promptRoutes, sessionRoutes, waitingRoutes } from "./agent-routes.ts";
import { loginRoutes, mcpRoutes } from "./mcp-routes.ts";
import { openAiRoutes } from "./openai-routes.ts";
import {
  descriptionRoutes,
  fileRoutes,
  guidelineRoutes,
  homeRoutes,
  serverRoutes,
  specRoutes,
} from "./project-routes.ts";
import { clusterRoutes, dispatchRoutes, runRoutes, webhookRoutes, workflowRoutes } from "./run-routes.ts";
import { uiRoutes } from "./ui-routes.ts";

/** The routes of every server: queries about the project. */
const projectRoutes = {
  ...homeRoutes,
  ...serverRoutes,
  ...descriptionRoutes,
  ...guidelineRoutes,
  ...specRoutes,
  ...fileRoutes,
  ...mcpRoutes,
};

/** The routes of a server with a service: agents, workflows and their work. */
const serviceRoutes = {
  ...agentRoutes,
  ...uiRoutes,
  ...openAiRoutes,
  ...agUiRoutes,
  ...a2aRoutes,
  ...approvalRoutes,
  ...waitingRoutes,
  ...loginRoutes,
  ...promptRoutes,
  ...dispatchRoutes,
  ...clusterRoutes,
  ...sessionRoutes,
  ...workflowRoutes,
  ...runRoutes,
  ...webhookRoutes,
};

export const routes = { ...projectRoutes, ...serviceRoutes };

/** All routes by their keys, `GET /api/specs/{id}`. */
export type Routes = typeof routes;
