"""What an instructor writes, and the students' version of it; assignments of nbgrader's, too."""
