"""Real Accelerate as a subject of the conformance protocol: one process per rank, each
`python -m conformance.subjects.accelerate` from the root of the project.

session.py is the conversation, values.py how values are written; every other file answers the operations of one topic.
"""
