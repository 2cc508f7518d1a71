package settle

import (
	"context"
	"time"
)

func init() { grace = 0 }

// SetAbandoned changes the age of a lease's last sign of life at which it is taken over.
func SetAbandoned(age time.Duration) (before time.Duration) {
	before, abandoned = abandoned, age
	return before
}

// NameStarters is a part of a step, by its number.
func (s *Settler) NameStarters(ctx context.Context, number uint64, from, until time.Time) error {
	return s.nameStarters(ctx, number, from, until)
}
