-- Works with binaries from 100 on.
-- ClickHouse collects statistics of every column in each merge, a seventh of what merges cost here, and leaves parts
-- out of an answer by them. No answer may rest on them, and none needs them. Parts of before keep theirs until they
-- are merged. Tables that no answer reads keep them: every statement here is one more for each new store.
ALTER TABLE agents MODIFY SETTING auto_statistics_types = '';
ALTER TABLE runs MODIFY SETTING auto_statistics_types = '';
ALTER TABLE attributions MODIFY SETTING auto_statistics_types = '';
ALTER TABLE rollup_runs MODIFY SETTING auto_statistics_types = '';
ALTER TABLE rollup_attributions MODIFY SETTING auto_statistics_types = '';
ALTER TABLE initiator_keys MODIFY SETTING auto_statistics_types = ''
