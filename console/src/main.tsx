import "./styles.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { connection } from "./api/connection.ts";
import { session } from "./api/server.ts";
import { router } from "./router.tsx";
import { applyTheme } from "./shell/theme.ts";

applyTheme();
// The client itself retries.
const queries = new QueryClient({
  defaultOptions: {
    queries: { retry: false, staleTime: 2_000, networkMode: "always" },
    mutations: { networkMode: "always" },
  },
});
let { key } = session.current;
session.subscribe(() => {
  if (session.current.key === key) return;
  key = session.current.key;
  // Drops answers for another key, which this key may not be allowed to see.
  void queries.resetQueries();
});

// The page repeats the requests that failed while the server was gone.
connection.subscribe(() => {
  if (!connection.isLost) void queries.invalidateQueries();
});

const place = document.getElementById("root");
if (place !== null) {
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
