-- Works with binaries from 100 on.
-- Who was purged: what they did until then stays out. person is a keyed hash of the organization and the identifier, so
-- that nothing here names either. The greatest revision counts.
CREATE TABLE IF NOT EXISTS purged_people
(
    person   FixedString(16),
    revision UInt64,
    until    DateTime64(3, 'UTC'), -- inclusive, over event clocks
    lifted   Bool
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY person
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
