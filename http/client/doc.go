// Package client asks a runlens server from Go: the catalog, one query, or every page of an answer.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080", Key: os.Getenv("RUNLENS_API_KEY")})
//	for page, err := range c.Pages(ctx, query) { … }
//
// A request that is refused with 429, fails with 5xx or loses its connection is sent again: every request reads, or
// pushes records that are stored once however often they come, so a repeat changes nothing. Only a query that is too
// expensive (ReasonTooExpensive) is not. The client waits as long as Retry-After says, within Config.MaxWait and the
// context.
// Refusals are values of type *Error; a server that cannot be reached is a *ConnectionError.
//
// The package depends on the standard library only. Members and codes are strings, and unknown fields of answers are
// ignored, so a newer server does not break an older client.
package client
