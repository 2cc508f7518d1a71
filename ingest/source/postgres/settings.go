package postgres

// Settings of the transactions that read, as further columns of a SELECT.
const (
	// readSettings spare the source. Compiling a statement takes longer than running most of ours, and PostgreSQL
	// does it for whatever it estimates to be expensive, as every plan is that has no index to use. Parallel workers
	// would take processors from the source's own work.
	readSettings = ", set_config('TimeZone', 'UTC', true), set_config('jit', 'off', true)" +
		", set_config('max_parallel_workers_per_gather', '0', true)"
	// pageSettings make PostgreSQL read a page in the order of the index on (updated_at, id). Where many rows changed
	// at the same instant, as after a migration, the planner takes what comes after a key for a few rows, or for half
	// of the table, and would sort all of that for every page, on disk. The index is right for every page. Where there
	// is none, the rows of a page are sorted in memory: usual ones take half of these 32 MB.
	pageSettings = ", set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)" +
		", set_config('enable_sort', 'off', true)" +
		", set_config('work_mem', CASE WHEN pg_size_bytes(current_setting('work_mem')) < 32 << 20 THEN '32MB'" +
		" ELSE current_setting('work_mem') END, true)"
)
