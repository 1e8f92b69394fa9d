"""What people read: a page for each student, one for the instructor, and the progress bar."""
