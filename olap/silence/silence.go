// Package silence bounds how long a connection waits for a host that is gone, of which no reset comes. Linux would go
// on sending for a quarter of an hour, where the name has another address by then. While an answer is waited for, the
// system probes the host, and the same bound holds.
package silence
