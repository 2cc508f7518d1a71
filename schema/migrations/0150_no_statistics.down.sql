ALTER TABLE agents RESET SETTING auto_statistics_types;
ALTER TABLE runs RESET SETTING auto_statistics_types;
ALTER TABLE attributions RESET SETTING auto_statistics_types;
ALTER TABLE rollup_runs RESET SETTING auto_statistics_types;
ALTER TABLE rollup_attributions RESET SETTING auto_statistics_types;
ALTER TABLE initiator_keys RESET SETTING auto_statistics_types
