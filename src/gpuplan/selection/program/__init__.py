"""The problem as a mixed-integer program: tables, columns, rows, and the door to HiGHS."""
