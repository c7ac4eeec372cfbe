// Called with types out of the OpenAPI document; it is compiled, not run.
import createClient from "openapi-fetch";
import type { paths } from "./recollect";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8321", headers: { Authorization: "Bearer rk_…" } });

const { data: found, error } = await client.POST("/v1/search", { body: { query: "annual leave", top_k: 3 } });
if (error) throw new Error(error.detail);
for (const result of found.results) {
  const path = { document_id: result.document_id };
  const { data: document } = await client.GET("/v1/documents/{document_id}", { params: { path } });
  console.log(result.source, result.score, document?.title);
}
const { data: answer } = await client.POST("/v1/ask", { body: { question: "How long is annual leave?" } });
// Asked for with `Accept: text/event-stream`, it would be a stream of events, as text.
if (typeof answer === "object") console.log(answer.answer);

// @ts-expect-error - what a search does not take is told when it is compiled
await client.POST("/v1/search", { body: { query: "annual leave", top_k: "three" } });
