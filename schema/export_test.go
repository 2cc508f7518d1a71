package schema

// Cause is cause, for tests.
var Cause = cause
