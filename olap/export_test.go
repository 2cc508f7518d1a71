package olap

// AddUpAlways makes the engine add up settled records however few there are.
func (e *Engine) AddUpAlways() { e.addUpFrom = 0 }

// RememberNothing makes every statement look for changes itself.
func (e *Engine) RememberNothing() { e.changes.most = -1 }
