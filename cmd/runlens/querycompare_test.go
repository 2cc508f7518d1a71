package main

import (
	"strings"
	"testing"
	"time"
)

func queryCompare(t *testing.T, o office) {
	// Of the day that goes on only some runs are there. At 23:00 in UTC it is 17:00 of the same day six hours west.
	now, zone := time.Now().UTC(), "UTC"
	if now.Hour() == 23 {
		zone = "Etc/GMT+6"
	}
	ago := func(days int) string { return now.AddDate(0, 0, -days).Format(time.DateOnly) }
	d := o.desk(t, "compare",
		ago(4)+" a@x.example COMPLETED", ago(4)+" b@x.example COMPLETED", ago(4)+" a@x.example COMPLETED",
		ago(4)+" a@x.example COMPLETED", ago(3)+" a@x.example COMPLETED", ago(2)+" a@x.example COMPLETED",
		ago(1)+" a@x.example COMPLETED", ago(1)+" a@x.example COMPLETED", ago(0)+" a@x.example COMPLETED",
		"2026-03-02 a@x.example COMPLETED", "2026-03-02 a@x.example FAILED", "2026-03-03 b@x.example COMPLETED",
		"2026-02-28 a@x.example COMPLETED", "2026-02-27 c@x.example FAILED",
		"2025-03-03 b@x.example COMPLETED", "2024-02-29 a@x.example COMPLETED", "2025-03-01 a@x.example COMPLETED")
	const head = "run_count,run_count_previous,run_count_difference,run_count_percent"
	days := "--start 2026-03-02 --end 2026-03-05 --output csv --metrics run_count "
	d.answers("totals", days+"--compare previous", head+"\n3,2,1,50\n")
	d.answers("a year ago", days+"--compare year", head+"\n3,1,2,200\n")
	d.answers("users", days+"--compare previous --dimensions user_identifier --start 2026-03-01",
		"user_identifier,user_name,"+head+"\na@x.example,,2,1,1,100\nb@x.example,,1,0,1,\nc@x.example,,0,1,-1,-100\n")
	d.answers("users backwards", days+"--compare previous --dimensions user_identifier --start 2026-03-01 "+
		"--order user_identifier:desc --limit 2",
		"user_identifier,user_name,"+head+"\nc@x.example,,0,1,-1,-100\nb@x.example,,1,0,1,\n")
	d.answers("rates", days+"--compare previous --start 2026-03-01 --dimensions user_identifier "+
		"--metrics run_success_rate", "user_identifier,user_name,"+head+",run_success_rate,run_success_rate_previous,"+
		"run_success_rate_difference,run_success_rate_percent\n"+
		"a@x.example,,2,1,1,100,0.5,1,-0.5,-50\nb@x.example,,1,0,1,,1,,,\nc@x.example,,0,1,-1,-100,,0,,\n")
	d.answers("days", days+"--compare previous --dimensions day", "day,"+head+"\n2026-03-02,2,0,2,\n2026-03-03,1,1,0,0\n"+
		"2026-03-04,0,1,-1,-100\n")
	d.answers("filled days", days+"--compare previous --dimensions day --fill",
		"day,"+head+"\n2026-03-02,2,0,2,\n2026-03-03,1,1,0,0\n2026-03-04,0,1,-1,-100\n2026-03-05,0,0,0,\n")
	d.answers("top users", days+"--compare previous --dimensions user_identifier --order run_count:desc "+
		"--start 2026-03-01 --limit 1", "user_identifier,user_name,"+head+"\na@x.example,,2,1,1,100\n")
	d.answers("top days", days+"--compare year --dimensions day --order run_count:asc,day:desc",
		"day,"+head+"\n2026-03-03,1,1,0,0\n2026-03-02,2,0,2,\n")
	recent := "--output csv --metrics run_count --compare previous --timezone " + zone + " "
	d.answers("until yesterday", recent+"--last 3d", head+"\n3,4,-1,-25\n")
	d.answers("users until yesterday", recent+"--last 3d --dimensions user_identifier",
		"user_identifier,user_name,"+head+"\na@x.example,,3,3,0,0\nb@x.example,,0,1,-1,-100\n")
	d.answers("days until today", recent+"--last 3d --dimensions day",
		"day,"+head+"\n"+ago(2)+",1,0,1,\n"+ago(1)+",2,4,-2,-50\n"+ago(0)+",1,,,\n")
	d.answers("filled days until today", recent+"--last 2d --dimensions day --fill --filter user_identifier=b@x.example",
		"day,"+head+"\n"+ago(1)+",0,0,0,\n"+ago(0)+",0,,,\n")
	d.answers("only today", recent+"--today", head+"\n1,,,\n")
	if _, _, stderr := d.query(recent + "--last 3d"); !strings.Contains(stderr, ago(0)+" is not over") ||
		!strings.Contains(stderr, ago(2)+" to "+ago(1)+" is compared with "+ago(5)+" to "+ago(4)) {
		t.Errorf("%s", stderr)
	}
	leap := "--output csv --metrics run_count --dimensions day --compare year "
	d.answers("a leap day", leap+"--start 2024-02-29 --end 2024-02-29", "day,"+head+"\n2024-02-29,1,,,\n")
	d.answers("after a leap day", leap+"--start 2025-02-28 --end 2025-03-01", "day,"+head+"\n2025-03-01,1,0,1,\n")
	_, _, stderr := d.query(leap + "--start 2025-02-28 --end 2025-03-01")
	if !strings.Contains(stderr, "2024-02-29 has no day to be compared with") {
		t.Errorf("%s", stderr)
	}
}
