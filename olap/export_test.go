package olap

// AddUpAlways makes the engine add up settled records however few there are.
func (e *Engine) AddUpAlways() { e.addUpFrom = 0 }
