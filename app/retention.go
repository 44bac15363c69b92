package app

import "github.com/pactwire/pactwire/store"

// retention is what is kept of each namespace's history.
func (s *service) retention() map[string]store.Retention {
	keep := map[string]store.Retention{}
	for _, n := range s.cfg.Namespaces {
		var r store.Retention
		if n.Retention.Age != nil {
			r.Age = *n.Retention.Age
		}
		if n.Retention.Count != nil {
			r.Count = *n.Retention.Count
		}
		if n.Retention.Force != nil {
			r.Force = *n.Retention.Force
		}
		keep[n.Name] = r
	}
	return keep
}
