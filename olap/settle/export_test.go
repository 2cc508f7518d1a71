package settle

import "time"

func init() { grace = 0 }

// SetAbandoned changes the age of a lease's last sign of life at which it is taken over.
func SetAbandoned(age time.Duration) (before time.Duration) {
	before, abandoned = abandoned, age
	return before
}
