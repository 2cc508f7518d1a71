-- Works with binaries from 100 on.
-- Keys are sorted by their id. Those of an organization are in a few granules of a large table. Parts of before get the
-- index when they are merged, and are read whole until then.
ALTER TABLE api_keys ADD INDEX IF NOT EXISTS by_organization organization_id TYPE bloom_filter GRANULARITY 1
