"""Tests of the differential test itself: ci/conformance runs them."""
