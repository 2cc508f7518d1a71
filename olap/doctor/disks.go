package doctor

import (
	"context"
	"fmt"
	"math"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// A disk is one that holds our tables, or may.
type disk struct {
	Name     string `ch:"name"`
	Free     uint64 `ch:"unreserved_space"`
	Total    uint64 `ch:"total_space"`
	ReadOnly bool   `ch:"read_only"`
	Broken   bool   `ch:"broken"`
}

func (s Store) disks(ctx context.Context) ([]finding.Finding, error) {
	disks, err := rows[disk](ctx, s, "SELECT name, unreserved_space, total_space, toBool(is_read_only) AS read_only, "+
		"toBool(is_broken) AS broken FROM system.disks WHERE name IN (SELECT arrayJoin(disks) FROM system.storage_policies "+
		"WHERE policy_name IN (SELECT storage_policy FROM system.tables WHERE database = currentDatabase())) ORDER BY name")
	if err != nil {
		return nil, err
	}
	if len(disks) == 0 {
		return []finding.Finding{of(finding.Unknown, "", "the database has no tables yet, so it has no disks")}, nil
	}
	var found []finding.Finding
	for _, d := range disks {
		found = append(found, s.judgeDisk(d))
	}
	return found, nil
}

func (s Store) judgeDisk(d disk) finding.Finding {
	const do = "free some space or enlarge it; the log tables of ClickHouse are the first to shorten"
	percent := 100 * float64(d.Free) / math.Max(1, float64(d.Total))
	free := fmt.Sprintf("disk %s has %s free, %.1f %% of %s", d.Name, size(d.Free), percent, size(d.Total))
	below := func(limit Space) bool { return d.Free < limit.Bytes || percent < limit.Percent }
	switch {
	case d.Broken:
		return of(finding.Problem, "see ClickHouse's log", "disk %s is broken", d.Name)
	case d.ReadOnly:
		return of(finding.Problem, "mount it so that ClickHouse can write to it", "disk %s can't be written to", d.Name)
	case d.Total == 0 || d.Total > math.MaxInt64:
		return of(finding.OK, "", "disk %s has no size: an object storage", d.Name)
	case below(s.DiskProblem):
		return of(finding.Problem, do, "%s: inserts and merges are about to fail", free)
	case below(s.DiskWarning):
		return of(finding.Warning, do, "%s: a merge needs as much as the parts that it merges", free)
	}
	return of(finding.OK, "", "%s", free)
}

// size writes bytes for a person.
func size(bytes uint64) string {
	switch {
	case bytes >= 1<<40:
		return fmt.Sprintf("%.1f TiB", float64(bytes)/(1<<40))
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
