-- Works with binaries from 100 on.
-- ClickHouse collects statistics of every column in each merge, a seventh of what merges cost here, and leaves parts
-- out of an answer by them. No answer may rest on them, and none needs them. Parts of before keep theirs until they
-- are merged.
ALTER TABLE agents MODIFY SETTING auto_statistics_types = '';
ALTER TABLE runs MODIFY SETTING auto_statistics_types = '';
ALTER TABLE attributions MODIFY SETTING auto_statistics_types = '';
ALTER TABLE conflicting_records MODIFY SETTING auto_statistics_types = '';
ALTER TABLE rollup_runs MODIFY SETTING auto_statistics_types = '';
ALTER TABLE rollup_attributions MODIFY SETTING auto_statistics_types = '';
ALTER TABLE initiator_keys MODIFY SETTING auto_statistics_types = '';
ALTER TABLE shared_initiator_keys MODIFY SETTING auto_statistics_types = '';
ALTER TABLE rollup_log MODIFY SETTING auto_statistics_types = '';
ALTER TABLE insert_counters MODIFY SETTING auto_statistics_types = '';
ALTER TABLE api_keys MODIFY SETTING auto_statistics_types = '';
ALTER TABLE api_key_uses MODIFY SETTING auto_statistics_types = '';
ALTER TABLE secrets MODIFY SETTING auto_statistics_types = '';
ALTER TABLE audit_log MODIFY SETTING auto_statistics_types = '';
ALTER TABLE usage_log MODIFY SETTING auto_statistics_types = '';
ALTER TABLE checkpoints MODIFY SETTING auto_statistics_types = '';
ALTER TABLE purge_targets MODIFY SETTING auto_statistics_types = '';
ALTER TABLE replacements MODIFY SETTING auto_statistics_types = '';
ALTER TABLE purged_people MODIFY SETTING auto_statistics_types = '';
ALTER TABLE placement MODIFY SETTING auto_statistics_types = ''
