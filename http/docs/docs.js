// The page asks only the address that it came from. The key stays in its memory.
SwaggerUIBundle({
  url: "openapi.yaml",
  dom_id: "#api",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  validatorUrl: null,
});
