"""The doctor: is what a database holds what this package installs, and can nobody do more than he should?"""

from onecommit.doctor.examination import examine, require_strict
from onecommit.doctor.finding import Finding
from onecommit.doctor.report import DoctorReport, Profile

__all__ = ["DoctorReport", "Finding", "Profile", "examine", "require_strict"]
