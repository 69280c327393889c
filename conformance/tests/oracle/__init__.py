"""Tests of the differential test itself: ci/oracle_tests runs them."""
