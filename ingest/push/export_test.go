package push

// Waiting is how many requests wait for the next insert.
func (l *Lane) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
