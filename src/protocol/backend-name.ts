/** The backends that are chosen by name. */
export const backendNames = ["typed", "graph", "openai_agents", "google_adk"] as const;
export type BackendName = (typeof backendNames)[number];
