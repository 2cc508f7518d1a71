// The page asks only the address that it came from. Keys stay in its memory.
for (const [url, id] of [["openapi.yaml", "#api"], ["ingest.yaml", "#ingest"]]) {
  SwaggerUIBundle({
    url,
    dom_id: id,
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    persistAuthorization: false,
    validatorUrl: null,
  });
}
