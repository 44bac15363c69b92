package handlers

import (
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// newRequestMetric counts and times requests by route, never by address: the number of routes is bounded.
func newRequestMetric(registerer prometheus.Registerer) *prometheus.HistogramVec {
	metric := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "pactwire", Subsystem: "http", Name: "request_seconds", Help: "Time to answer a request, by route and status.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"method", "route", "status"})
	if registerer != nil {
		registerer.MustRegister(metric)
	}
	return metric
}

// measure is the outermost middleware of the API. Errors are answered here, so that their status is known.
func (s *Server) measure(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		if err := next(c); err != nil {
			s.handleError(err, c)
		}
		s.requests.WithLabelValues(c.Request().Method, c.Path(), strconv.Itoa(c.Response().Status)).Observe(time.Since(began).Seconds())
		return nil
	}
}
