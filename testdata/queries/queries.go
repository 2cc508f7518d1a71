// Package queries holds the cases of the query API, answers worked out by hand from the specification, and the list of
// the rules that they prove. README.md describes their language, which package conform reads.
package queries

import "embed"

// Files are the scripts (*.test) and rules.txt.
//
//go:embed *.test rules.txt
var Files embed.FS
